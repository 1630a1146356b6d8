import {cssVariable} from "../dom";
import {COLOURS, type Curve} from "./curve";

const MARGIN = 12;
const TITLE = 26;
const LINE = 20;
const SWATCH = 24;

// The chart's canvas with a title and the names of its curves, as a picture.
export async function toPng(plot: HTMLCanvasElement | undefined, title: string, curves: Curve[]): Promise<Blob> {
  if (plot === undefined) throw new Error("there is no chart yet");
  const scale = devicePixelRatio;
  const width = plot.width / scale + 2 * MARGIN;
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d")!;
  context.font = `12px ${cssVariable("--sans")}`;
  const places = legendPlaces(context, curves, width);
  const legendTop = MARGIN + TITLE + plot.height / scale + LINE;
  const height = legendTop + LINE * ((places.at(-1)?.line ?? 0) + 1) + MARGIN - LINE / 2;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  context.scale(scale, scale);
  context.fillStyle = cssVariable("--surface");
  context.fillRect(0, 0, width, height);
  context.drawImage(plot, MARGIN, MARGIN + TITLE, plot.width / scale, plot.height / scale);
  context.fillStyle = cssVariable("--text");
  context.font = `600 14px ${cssVariable("--sans")}`;
  context.fillText(title, MARGIN + 4, MARGIN + 14);
  context.font = `12px ${cssVariable("--sans")}`;
  for (const {curve, x, line} of places) {
    const y = legendTop + LINE * line;
    context.strokeStyle = cssVariable(`--series-${(curve.colour % COLOURS) + 1}`);
    context.lineWidth = 2;
    context.setLineDash([[], [6, 4], [2, 3]][curve.dash] ?? []);
    context.beginPath();
    context.moveTo(x, y - 4);
    context.lineTo(x + SWATCH - 6, y - 4);
    context.stroke();
    context.fillText(curve.label, x + SWATCH, y);
  }
  return new Promise((resolve, reject) => canvas.toBlob(
    (blob) => blob === null ? reject(new Error("the picture is too large")) : resolve(blob), "image/png"));
}

// Names in lines that are not wider than the picture.
function legendPlaces(context: CanvasRenderingContext2D, curves: Curve[], width: number):
    {curve: Curve; x: number; line: number}[] {
  let x = MARGIN + 4;
  let line = 0;
  return curves.map((curve) => {
    const size = SWATCH + context.measureText(curve.label).width + 16;
    if (x > MARGIN + 4 && x + size > width - MARGIN) {
      x = MARGIN + 4;
      ++line;
    }
    const place = {curve, x, line};
    x += size;
    return place;
  });
}
