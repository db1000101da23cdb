import type { WelcomeFrame } from "../protocol/events.ts";
import { ColloquyError } from "../shared/errors.ts";
import { callerOf } from "../sockets/authenticated-sockets.ts";
import { maxReplayBytes, maxReplayEvents, replayPageEvents } from "./bounds.ts";
import { spentBy } from "./budget-notices.ts";
import { publicMember } from "./members.ts";
import { marksOf } from "./reading.ts";
import { acting } from "./rights.ts";
import type { SpaceServices } from "./services.ts";
import { publicSpace } from "./settings.ts";
import { requireSocketRoom } from "./space-sockets.ts";

/** A socket's `?cursor=`. Undefined means from now on. */
const cursorOf = (url: string): number | undefined => {
  const cursor = new URL(url).searchParams.get("cursor");
  if (cursor === null) return undefined;
  if (!/^\d{1,15}$/.test(cursor)) throw new ColloquyError("invalid_cursor", "cursor must be a whole number from 0");
  return Number(cursor);
};

/**
 * Opens a member's socket: the welcome first, then what it missed, then what happens; all in one turn, so that
 * nothing falls between (D3). A client that is too far behind, or ahead of the log, is told so and gets no replay.
 */
export const connect = (services: SpaceServices, request: Request): Response => {
  const { space, member, principal } = acting(services, callerOf(request));
  const head = services.log.head().seq;
  const asked = cursorOf(request.url);
  const missed = asked === undefined ? [] : missedFrames(services, asked, head);
  const [client, server] = Object.values(new WebSocketPair());
  if (!client || !server) throw new Error("connect: a WebSocketPair is two sockets");
  requireSocketRoom(services.sockets, member.entityId, principal.kind);
  services.delivery.requireIndexed(member.joinedSeq);
  const session = services.sockets.accept(server, principal, { entityId: member.entityId });
  const members = services.members.all();
  const welcome: WelcomeFrame = {
    type: "welcome",
    space: publicSpace(space),
    members: members.map(publicMember),
    you: { id: member.entityId, type: member.type, name: member.name },
    cursor: missed && asked !== undefined ? asked : head,
    resumed: missed !== undefined,
    streams: services.live.snapshots(),
    active: services.live.active(),
    waiting: services.live.waiting(),
    reads: marksOf(members),
    spent: spentBy(members, services.clock.now()),
  };
  services.sockets.send(session, JSON.stringify(welcome));
  for (const frame of missed ?? []) services.sockets.send(session, frame);
  return new Response(null, { status: 101, webSocket: client });
};

/** The frames after `cursor`; undefined where they cannot be had in one go. */
const missedFrames = (services: SpaceServices, cursor: number, head: number): string[] | undefined => {
  if (cursor > head || head - cursor > maxReplayEvents) return undefined;
  let bytes = 0;
  const frames: string[] = [];
  // In small pages: what is too much to be sent must not be read into memory either.
  for (let from = cursor; from < head; from += replayPageEvents) {
    for (const { frame } of services.log.after(from, replayPageEvents)) {
      bytes += frame.length;
      if (bytes > maxReplayBytes) return undefined;
      frames.push(frame);
    }
  }
  return frames;
};
