import type { ProvenDelivery } from "../../protocol/rpc.ts";
import { textBytes } from "../../protocol/text.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxPayloadBytes, sameBodyMs } from "../bounds.ts";
import { requireRoom } from "./deliver.ts";
import type { InboxServices } from "./inbox-services.ts";

/**
 * Takes in a webhook delivery and remembers its name in the same transaction: the same delivery again answers the same
 * event (D5). Throws `not_found`, `payload_too_large`, and `unavailable` while the inbox is full.
 */
export const receive = (
  services: InboxServices,
  hookId: string,
  { name, payload }: ProvenDelivery,
  arm: () => void,
): { eventId: string } => {
  const { name: serviceName } = services.hooks.get(hookId);
  const bytes = textBytes(JSON.stringify(payload));
  if (bytes > maxPayloadBytes) {
    throw new ColloquyError(
      "payload_too_large",
      `The delivery has ${bytes} bytes; maxPayloadBytes is ${maxPayloadBytes}. A template of the hook picks what the agent reads of it.`,
    );
  }
  const { known, eventId } = identified(services, hookId, name);
  if (known) return { eventId };
  return services.transaction(() => {
    requireRoom(services, 1);
    services.dedupeKeys.firstSight(eventId);
    const root = { id: eventId, kind: "service" } as const;
    services.inbox.add(eventId, { type: "service", serviceName, payload, root }, true);
    arm();
    return { eventId };
  });
};

/**
 * The id of a delivery's event, and whether the event was made before. A delivery without an id is named by its body:
 * the same body within `sameBodyMs` is the same delivery. Its event's id follows from the body and the stretch of
 * `sameBodyMs` in which it came first, which is this one or the last.
 */
const identified = (
  services: InboxServices,
  hookId: string,
  name: ProvenDelivery["name"],
): { eventId: string; known: boolean } => {
  const { id: agentId } = services.identity.get();
  const idOf = (...names: (string | number)[]) => services.ids.deriveOwned("evt", agentId, "hook", hookId, ...names);
  const isKnown = (eventId: string) => services.dedupeKeys.seenAt(eventId) !== undefined;
  if ("id" in name) {
    const eventId = idOf("id", name.id);
    return { eventId, known: isKnown(eventId) };
  }
  const now = services.clock.now();
  const stretch = Math.floor(now / sameBodyMs);
  const last = idOf("body", name.bodyHash, stretch - 1);
  const isRecent = (services.dedupeKeys.seenAt(last) ?? Number.NEGATIVE_INFINITY) > now - sameBodyMs;
  if (isRecent) return { eventId: last, known: true };
  const eventId = idOf("body", name.bodyHash, stretch);
  return { eventId, known: isKnown(eventId) };
};
