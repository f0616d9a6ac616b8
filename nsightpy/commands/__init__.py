"""One function per command: reports in, a result out."""
