import type { ExportHead, ExportPage, ExportPlace } from "../../protocol/transfer-rpc.ts";
import { type CarriedList, carriedLists, exportFormat, exportVersion } from "../../protocol/exported-agent.ts";
import type { AgentRpc } from "../../protocol/rpc.ts";
import { isoTime } from "../../shared/clock.ts";
import { unwrap } from "../../shared/errors.ts";

/**
 * The text of an exported agent, piece by piece, each page asked for when the one before is written: no more than one
 * of them is in memory. It ends early where the agent does not answer any more, and is no JSON then.
 */
export const exportedText = async function* (
  agent: Pick<AgentRpc, "exportPage">,
  workspaceId: string,
  { head, names, bounds }: ExportHead,
): AsyncGenerator<string> {
  const envelope = { format: exportFormat, version: exportVersion, exportedAt: isoTime(bounds.at) };
  const opening = JSON.stringify({ ...envelope, agent: head });
  yield opening.slice(0, -2);
  const [, ...rest] = carriedLists;
  yield `,"names":${JSON.stringify(names)}`;
  let waiting: CarriedList[] = rest;
  let isOpen = false;
  let from: ExportPlace | null = null;
  do {
    const page: ExportPage = unwrap(await agent.exportPage(workspaceId, bounds, from));
    for (const { list, items } of page.parts) {
      // Those that are passed are empty.
      if (waiting.includes(list)) {
        const passed = waiting.slice(0, waiting.indexOf(list));
        yield `${isOpen ? "]" : ""}${passed.map((each) => `,"${each}":[]`).join("")},"${list}":[${items.join(",")}`;
        waiting = waiting.slice(passed.length + 1);
        isOpen = true;
      } else yield `,${items.join(",")}`;
    }
    from = page.next;
  } while (from);
  yield `${isOpen ? "]" : ""}${waiting.map((each) => `,"${each}":[]`).join("")}}}`;
};

/** The pieces as a body, each made when it is asked for. */
export const streamOf = (pieces: AsyncGenerator<string>): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await pieces.return(undefined);
    },
  });
};
