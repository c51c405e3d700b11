"""Lanes against a number: the length of the context, or the requests at once.

`DepthPanel` and `LoadPanel` say what is measured, `LoadWork` measures servers under load, `CurvesPage` shows
it: `CurvesView` draws the `Curves` that the lab has folded, a table below has every number.
"""
