import { z } from "zod";
import { ColloquyError } from "../../../shared/errors.ts";
import { defineTool, looks } from "../tool.ts";

/**
 * Silence. As the first step's only call it ends the cycle and rolls it back, which the run does itself before any
 * call is executed; a skip that is executed came too late.
 */
export const skip = defineTool({
  name: "skip",
  description:
    "Say nothing and forget this cycle, when nothing in the inbox needs you. Valid only as your first and only call.",
  input: z.object({ reason: z.string().max(500).optional().describe("Why silence is right, in a few words.") }),
  ...looks,
  endsRun: "own",
  only: "consciousness",
  execute() {
    throw new ColloquyError("skip_too_late", "skip is valid only as the first step's only call; just end instead");
  },
});
