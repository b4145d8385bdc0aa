"""An interrupt at one moment of a call, so that a test can try each moment in turn."""

import signal
import sys
from contextvars import copy_context

LOOKS = frozenset({"call", "c_return"})  # here Python looks for interrupts
ALL = frozenset({"call", "return", "c_return"})


def interrupted_at(
    moment, function, *arguments, events=LOOKS, within="opendp_concurrent", kept=None
):
    """Call ``function``, with a SIGINT at a moment; return whether it came.

    :param events: what counts as a moment
    :param within: part of the paths of the files whose moments count
    :param kept: a list to which the interrupt is added, as consoles keep the last exception
    """
    seen = 0

    def look(frame, event, argument):
        nonlocal seen
        code = frame.f_code
        if event in events and within in code.co_filename and code is not interrupted_at.__code__:
            seen += 1
            if seen == moment:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    try:
        sys.setprofile(look)
        try:
            copy_context().run(function, *arguments)  # a with statement may be cut before its end
        finally:
            sys.setprofile(None)
    except KeyboardInterrupt as error:
        if kept is not None:
            kept.append(error)
        return True
    return seen >= moment
