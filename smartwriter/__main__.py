from smartwriter.cli import main

main()
