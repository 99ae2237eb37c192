// What the plots need from the libraries that draw them, by name, so that the rest of these libraries stays out of the package. Loaded when
// a plot is made.
export { areaY, dot, lineY, plot, rect, ruleX, ruleY, text } from '@observablehq/plot';
export { parseHTML } from 'linkedom';
