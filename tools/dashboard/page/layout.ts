// Where ranks are in a drawing.

export interface Place {
  x: number;
  y: number;
}

/** On an ellipse in the middle; two stand left and right, more begin at the top. */
export function ring(size: number, width: number, height: number, radiusX: number, radiusY: number): Place[] {
  const startAngle = size <= 2 ? Math.PI : -Math.PI / 2;
  const round = (value: number) => Math.round(value * 10) / 10;
  return Array.from({ length: size }, (_, rank) => {
    if (size === 1) return { x: width / 2, y: height / 2 };
    const angle = startAngle + (rank * 2 * Math.PI) / size;
    return { x: round(width / 2 + Math.cos(angle) * radiusX), y: round(height / 2 + Math.sin(angle) * radiusY) };
  });
}
