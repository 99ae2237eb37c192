// What the plots need of the libraries that draw them, by name: so the rest of these stays out of the package. Loaded when a plot is made.
export { areaY, dot, lineY, plot, rect, ruleX, ruleY, text } from '@observablehq/plot';
export { parseHTML } from 'linkedom';
