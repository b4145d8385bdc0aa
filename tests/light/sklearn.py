"""In place of scikit-learn, for the processes that tests start. OpenDP imports it, if it is there.

It takes a second of each process, and nothing here uses it.
"""

raise ImportError("the processes of tests do without scikit-learn")
