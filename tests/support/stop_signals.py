"""Stop signals for tests that start programs and interrupt them.

A runner that was started by nohup or in a script's background ignores some, and whatever it starts would,
too.
"""

import signal


def restore():
    """In this process, and so in those it starts, all stop signals do what they do by default."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
