import { ColloquyError } from "../shared/errors.ts";
import { excess, unsoundness } from "../shared/sound-json.ts";

/** The JSON of a client's frame. Throws `bad_frame`. `bound`: the most characters, by the bound's name. */
export const rawFrame = (data: string | ArrayBuffer, bound: Record<string, number>): unknown => {
  if (typeof data !== "string") throw new ColloquyError("bad_frame", "Send text frames, not binary ones");
  for (const [name, most] of Object.entries(bound)) {
    if (data.length > most) throw new ColloquyError("bad_frame", `A frame has at most ${most} characters (${name})`);
  }
  const refused = excess(data);
  let raw: unknown;
  try {
    if (!refused) raw = JSON.parse(data);
  } catch (cause) {
    throw new ColloquyError("bad_frame", "Send one JSON object in a frame", { cause });
  }
  const issue = refused ?? unsoundness(raw);
  if (issue) throw new ColloquyError("bad_frame", "Send sound JSON, as the issue says", { issues: [issue] });
  return raw;
};
