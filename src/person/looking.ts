import type { Entity } from "../protocol/entity.ts";
import { unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { withTimeout } from "../shared/timeouts.ts";
import { askTimeoutMs, maxAsksAtOnce } from "./bounds.ts";
import { askTimer, type PersonServices } from "./services.ts";

/** The person whose object this is. */
export type Self = { workspaceId: string; entityId: string };

const askAgainMs = 2000;

/** Has a space tell the person from now on how it stands. Answers whether it could be asked. */
export const ask = async (services: PersonServices, self: Self, spaceId: string): Promise<boolean> => {
  const { env, spaces, change, timers, clock } = services;
  try {
    const asked = env.SPACE.getByName(spaceId).attend(self.workspaceId, self.entityId, "all");
    const standing = await withTimeout(askTimeoutMs, asked);
    // They have left meanwhile, or the space is gone.
    if (!standing.ok && ["not_found", "not_a_member"].includes(standing.problem.code)) return true;
    const { readSeq: _, ...told } = unwrap(standing);
    change(spaceId, () => spaces.store(spaceId, told));
    return true;
  } catch (error) {
    timers.setNoLater(askTimer, clock.now() + askAgainMs);
    log.warn("line.unasked", { spaceId, reason: error instanceof Error ? error.message : String(error) });
    return false;
  }
};

/**
 * Has each space of the person tell them from now on. Those that do so already are not asked. Those that cannot be reached
 * are asked again by a timer.
 */
export const look = async (services: PersonServices, self: Self): Promise<Entity> => {
  const { env, spaces, change } = services;
  const asked = env.WORKSPACE.getByName(self.workspaceId).lineOf(self.entityId);
  const { entity, spaceIds } = unwrap(await withTimeout(askTimeoutMs, asked));
  const own = new Set(spaceIds);
  for (const id of spaces.ids()) if (!own.has(id)) change(id, () => spaces.remove(id));
  const unknown = spaceIds.filter((id) => !spaces.find(id));
  const askNext = async (): Promise<void> => {
    for (let id = unknown.pop(); id !== undefined; id = unknown.pop()) await ask(services, self, id);
  };
  if (entity.type === "human") await Promise.all(Array.from({ length: maxAsksAtOnce }, askNext));
  return entity;
};
