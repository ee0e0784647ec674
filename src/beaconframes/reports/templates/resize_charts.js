// A chart is drawn when the page around it is not complete, and paper is narrower than the screen.
const charts = () => document.querySelectorAll(".js-plotly-plot");
addEventListener("load", () => charts().forEach((chart) => Plotly.Plots.resize(chart)));
addEventListener("beforeprint", () => charts().forEach((chart) => Plotly.relayout(chart, {width: 640, autosize: false})));
addEventListener("afterprint", () => charts().forEach((chart) => Plotly.relayout(chart, {width: null, autosize: true})));
