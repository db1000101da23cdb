import * as z from "zod";
import { closeCodes } from "../protocol/events.ts";
import { LineCommand, Visible } from "../protocol/line.ts";
import { ColloquyError } from "../shared/errors.ts";
import { createIds } from "../shared/ids.ts";
import { log } from "../shared/log.ts";
import { ringOf } from "../shared/secret-ring.ts";
import { rawFrame } from "../sockets/raw-frame.ts";
import { lineWindowMs, maxLineFrameLength, maxLineFrames } from "./bounds.ts";
import type { PersonServices } from "./services.ts";
import { refusalFrame } from "./subscriptions.ts";

/** The space that any frame of a client names. */
const Named = z.looseObject({ type: z.string(), spaceId: z.string() });

/**
 * One frame from a client: a subscription begins or ends, or a frame goes on to its space. What cannot be done is answered by
 * an `error` frame, and the line stays open. Only too many frames close it.
 */
export const receiveFrame = async (
  services: PersonServices,
  socket: WebSocket,
  data: string | ArrayBuffer,
): Promise<void> => {
  const { sockets, subscriptions, clock, env } = services;
  const session = sockets.of(socket);
  if (!session || sockets.closeIfExpired(session)) return subscriptions.end(socket);
  const now = clock.now();
  const rate = services.ratesOf(socket);
  if (!rate.admits(now)) {
    const most = `more than ${maxLineFrames} frames in ${lineWindowMs / 1000} s (maxLineFrames)`;
    sockets.close(session, closeCodes.slowDown, `${most}: wait ${rate.waitSeconds(now)} s`);
    return subscriptions.end(socket);
  }
  const send = (text: string): void => {
    const open = sockets.of(socket);
    if (open) sockets.send(open, text);
    else subscriptions.end(socket);
  };
  let spaceId: string | undefined;
  try {
    const raw = rawFrame(data, { maxLineFrameLength });
    const told = Visible.safeParse(raw);
    if (told.success) {
      const { lookedAt: _, ...rest } = session.data;
      session.data = told.data.visible ? { ...rest, lookedAt: now } : rest;
      return sockets.keep(session);
    }
    const named = Named.safeParse(raw);
    if (!named.success) {
      throw new ColloquyError(
        "bad_frame",
        "Send subscribe, unsubscribe, or a frame of a space's stream, with its spaceId",
      );
    }
    ({ spaceId } = named.data);
    if (!createIds(ringOf(env).ids.secret).isIssued("spc", spaceId)) {
      throw new ColloquyError("not_found", "There is no such space here: check its id");
    }
    if (named.data.type !== "subscribe" && named.data.type !== "unsubscribe") {
      const { spaceId: _, ...frame } = named.data;
      return subscriptions.forward(socket, spaceId, JSON.stringify(frame));
    }
    const command = LineCommand.safeParse(raw);
    if (!command.success) {
      const issues = command.error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
      throw new ColloquyError("bad_frame", "Send {type, spaceId}, and to subscribe also the cursor", { issues });
    }
    if (command.data.type === "unsubscribe") subscriptions.unsubscribe(socket, spaceId);
    else await subscriptions.subscribe({ socket, principal: session.principal, send }, spaceId, command.data.cursor);
  } catch (error) {
    if (!(error instanceof ColloquyError)) log.error("frame.failed", error, { spaceId });
    send(JSON.stringify(refusalFrame(error, spaceId)));
  }
};
