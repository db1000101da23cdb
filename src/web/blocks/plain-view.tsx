import type { PlainSchema } from "../../client/index.ts";
import { ListView } from "./list-view.tsx";
import { LogView } from "./log-view.tsx";
import { MapView } from "./map-view.tsx";
import type { Part } from "./part.ts";
import { TextView } from "./text-view.tsx";

/** A block that is no composite, or one section of one. */
export const PlainView = ({ schema, ...part }: Part<PlainSchema>) => {
  switch (schema.type) {
    case "text":
      return <TextView schema={schema} {...part} />;
    case "map":
      return <MapView schema={schema} {...part} />;
    case "list":
      return <ListView schema={schema} {...part} />;
    case "log":
      return <LogView schema={schema} {...part} />;
  }
};
