"""The command line."""


def main() -> None:
    from smartwriter.cli.app import cli

    cli()
