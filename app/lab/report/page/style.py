"""The page's style: one sheet for screen, dark screen and paper.

Faster and slower are blue and orange, which colour-blind eyes tell apart too.
"""

STYLE = """
:root { --ink: #1d2330; --soft: #5b6475; --line: #d9dee7; --page: #ffffff; --tint: #f4f6f9; --accent: #2563b8;
  --good: #0a5fa8; --bad: #a84a00; --same: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b5; --line: #353c49;
  --page: #14181f; --tint: #1c222c; --accent: #7fb0f5; --good: #6cc3f5; --bad: #f0a050; --same: #9aa4b5; } }
@media print { :root { --ink: #000; --soft: #444; --line: #d9d9d9; --page: #fff; --tint: #fff;
  --accent: #1d4f94; --good: #0a4f90; --bad: #8a3a00; --same: #555; } }
* { box-sizing: border-box; }
html { background: var(--page); color: var(--ink); font: 15px/1.5 Inter, "Segoe UI", system-ui, sans-serif; }
body { max-width: 1160px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 6px; }
h2 { font-size: 18px; margin: 36px 0 8px; }
p { margin: 6px 0; max-width: 78ch; }
.soft, figcaption, .facts dt { color: var(--soft); }
.verdict { font-size: 18px; margin: 18px 0; padding: 12px 16px; background: var(--tint);
  border-left: 4px solid var(--accent); }
.caution { color: var(--bad); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: 5px 7px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
.whole { white-space: nowrap; }
td.faster { color: var(--good); } td.slower { color: var(--bad); }
code, pre { font: 12.5px/1.5 "JetBrains Mono", ui-monospace, Menlo, Consolas, monospace; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--tint); padding: 10px 12px;
  margin: 6px 0; }
figure { margin: 12px 0 0; } figure svg { width: 100%; height: auto; display: block; }
svg text { font: 12px Inter, "Segoe UI", system-ui, sans-serif; fill: var(--ink); }
svg .grid { stroke: var(--line); } svg .one { stroke: var(--ink); stroke-dasharray: 4 3; }
svg .run { fill: var(--soft); fill-opacity: .35; } svg .interval { stroke: var(--ink); stroke-width: 2.5; }
td svg { vertical-align: middle; fill: var(--accent); }
svg .leader { stroke: var(--line); } svg .mean { stroke: var(--page); stroke-width: 1.5; fill: var(--same); }
svg .mean.faster { fill: var(--good); } svg .mean.slower { fill: var(--bad); }
svg .cell { fill: var(--accent); stroke: var(--line); }
svg .lane { stroke-width: 2.5; } svg .dot { stroke: var(--page); }
svg .lane0 { stroke: var(--same); } svg .lane1 { stroke: #0a72b8; } svg .lane2 { stroke: #d06a00; }
svg .lane3 { stroke: #0b8f6a; } svg .lane4 { stroke: #b8459a; } svg .lane5 { stroke: #8a7a00; }
svg .lane6 { stroke: #5a56c8; } svg .lane7 { stroke: #b03a2e; }
svg .cell.best { stroke: var(--ink); stroke-width: 2; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 8px 0;
  font-size: 13.5px; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.definitions { font-size: 12.5px; color: var(--soft); columns: 2; column-gap: 32px; margin-top: 8px; }
.definitions p { break-inside: avoid; margin: 0 0 4px; }
details { margin: 24px 0 0; } details summary { cursor: pointer; color: var(--accent); }
@media print { @page { margin: 14mm; } body { max-width: none; padding: 0; } html { font-size: 11pt; }
  h2 { break-after: avoid; } figure, tr, pre, .verdict { break-inside: avoid; } table { font-size: 7.5pt; }
  th, td { padding: 3px 4px; } td code { font-size: 7.5pt; }
  .scroll { overflow: visible; } details { display: none; } }
""".strip()
