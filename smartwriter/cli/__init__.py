"""The command line."""


def main() -> None:
    import atexit

    from smartwriter.cli.outlet import end_as_unread, exit_code, open_outlets
    from smartwriter.cli.terminal import guard

    open_outlets()
    guard()  # before anything is said, be it that the command is misspelt
    from smartwriter.cli.app import cli

    atexit.register(end_as_unread)  # the first, so it is called when all others have been
    try:
        cli()
    except BaseException as end:
        if isinstance(end, SystemExit) and not end.code:
            end.code = exit_code()
        if not isinstance(end, SystemExit) or end.code:
            atexit.unregister(end_as_unread)  # a failure has its own exit code
        raise
