// The shown run and view, as the part of the address after "#": #/RUN/VIEW.

export interface Route {
  run: string | undefined;
  view: string | undefined;
}

export function parseRoute(hash: string): Route {
  const [run, view] = hash.replace(/^#\/?/, "").split("/").map(decode);
  return {run: run === "" ? undefined : run, view: view === "" ? undefined : view};
}

export function formatRoute(run: string, view: string): string {
  return `#/${encodeURIComponent(run)}/${encodeURIComponent(view)}`;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
