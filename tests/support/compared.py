"""Two texts of which all kinds of things differ."""

BEFORE = """\
# 渡口

The ferry left early that morning, and nobody saw it go.

渡口的雾很大，船没有来。

This one is the same.

This one goes away.

The last one moves to the top of the page.
"""
AFTER = """\
# 渡口

The last one moves to the top of the page.

The ferry left late that morning, and nobody saw it go.

渡口的雾散了，船没有来。

This one is the same.

Something <b>new</b> & bold.
"""
