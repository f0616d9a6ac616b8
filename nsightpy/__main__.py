"""python -m nsightpy"""

from nsightpy.cli.main import main

if __name__ == "__main__":
    main()
