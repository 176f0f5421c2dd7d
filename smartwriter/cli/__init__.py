"""The command line."""


def main() -> None:
    from smartwriter.cli.terminal import guard

    guard()  # before anything is said, be it that the command is misspelt
    from smartwriter.cli.app import cli

    cli()
