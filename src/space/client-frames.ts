import * as z from "zod";
import { ClientFrame, closeCodes, type DurableEvent, type ErrorFrame } from "../protocol/events.ts";
import { messageId, toolCallId } from "../protocol/ids.ts";
import { ClientKey, type Message } from "../protocol/message.ts";
import { hasScope, type Principal } from "../protocol/principal.ts";
import { maxTextBytes, textBytes } from "../protocol/text.ts";
import { ColloquyError, type Issue, problem } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { rawFrame } from "../sockets/raw-frame.ts";
import { frameWindowMs, maxBadFrames, maxFrameLength, maxFrames, maxMemberFrames } from "./bounds.ts";
import { deleteMessage, editMessage } from "./message-changes.ts";
import { post } from "./posting.ts";
import { markRead } from "./reading.ts";
import type { SpaceServices } from "./services.ts";
import type { SpaceSession } from "./space-sockets.ts";
import { answerToolCall } from "./tool-call-events.ts";

const windowSeconds = frameWindowMs / 1000;

/**
 * One frame from a client. What it asks is done, or answered by an `error` frame on its own socket. Only too many
 * frames of it or of its member, or too many bad ones, close the socket.
 */
export const receiveFrame = async (
  services: SpaceServices,
  session: SpaceSession,
  data: string | ArrayBuffer,
): Promise<void> => {
  const { sockets, rates, clock } = services;
  if (sockets.closeIfExpired(session)) return;
  const now = clock.now();
  const { frames, badFrames } = rates.ofSocket(session.socket);
  const { entityId } = session.data;
  const memberFrames = rates.members.of(entityId, now);
  let tooMany: string | undefined;
  if (!frames.admits(now)) {
    tooMany = `more than ${maxFrames} frames in ${windowSeconds} s (maxFrames): wait ${frames.waitSeconds(now)} s`;
  } else if (!memberFrames.admits(now)) {
    tooMany = `your sockets sent more than ${maxMemberFrames} frames in ${windowSeconds} s (maxMemberFrames): wait ${memberFrames.waitSeconds(now)} s`;
  }
  if (tooMany !== undefined) {
    sockets.close(session, closeCodes.slowDown, tooMany);
    return;
  }
  let names: Names = {};
  try {
    const raw = rawFrame(data, { maxFrameLength });
    names = Named.safeParse(raw).data ?? {};
    await obey(services, session, parseFrame(raw));
  } catch (error) {
    if (!(error instanceof ColloquyError)) log.error("frame.failed", error, { entityId });
    const { code, message, issues } =
      error instanceof ColloquyError ? error : new ColloquyError("internal", "Try again");
    const refusal: ErrorFrame = { ...problem(code, message, issues), type: "error", ...names };
    sockets.send(session, JSON.stringify(refusal));
    if (code === "bad_frame" && !badFrames.admits(clock.now())) {
      const tooManyBad = `more than ${maxBadFrames} bad frames in ${windowSeconds} s (maxBadFrames)`;
      sockets.close(session, closeCodes.badFrames, tooManyBad);
    }
  }
};

/** As by HTTP, only where the space refuses an entity is the workspace asked whether it is an admin. */
const removeMessage = async (services: SpaceServices, principal: Principal, messageId: string): Promise<void> => {
  try {
    deleteMessage(services, principal, messageId);
  } catch (error) {
    const isRefused = error instanceof ColloquyError && error.code === "forbidden" && principal.kind === "entity";
    if (!isRefused || !(await services.isAdmin(principal))) throw error;
    deleteMessage(services, { ...principal, admin: true }, messageId);
  }
};

const obey = async (services: SpaceServices, session: SpaceSession, frame: ClientFrame): Promise<void> => {
  const { principal } = session;
  if (principal.kind === "key" && !hasScope(principal)) {
    const detail = "The secret key of this socket may only read: open one by a key of scope full";
    throw new ColloquyError("forbidden", detail);
  }
  // A repeated message is answered to its sender alone: the others have it.
  const tell = (event: { type: DurableEvent["type"]; cursor: number; message: Message }): void =>
    services.sockets.send(session, JSON.stringify(event));
  if (frame.type === "message.edit") editMessage(services, principal, frame.messageId, frame.text);
  else if (frame.type === "message.delete") await removeMessage(services, principal, frame.messageId);
  else if (frame.type === "read") markRead(services, principal, frame.messageId);
  else if (frame.type === "typing") tellTyping(services, session.data.entityId);
  else if (frame.type === "tool.result") {
    const { toolCallId, result } = frame;
    const { message, created, updatedSeq } = answerToolCall(services, principal, toolCallId, { result });
    if (!created) tell({ type: "space.message.updated", cursor: updatedSeq, message });
  } else {
    const { type: _, ...input } = frame;
    const { message, created } = post(services, principal, input);
    if (!created) tell({ type: "space.message", cursor: message.seq, message });
  }
};

/** Tells the others that a member types, unless they have just been told. */
const tellTyping = ({ sockets, rates, clock }: SpaceServices, entityId: string): void => {
  const now = clock.now();
  if (!rates.typing.of(entityId, now).admits(now)) return;
  const isOther = ({ data }: SpaceSession): boolean => data.entityId !== entityId;
  sockets.broadcast(JSON.stringify({ type: "member.typing", entityId }), isOther);
};

const parseFrame = (raw: unknown): ClientFrame => {
  const parsed = ClientFrame.safeParse(raw);
  if (parsed.success) return parsed.data;
  if (textBytes(Draft.safeParse(raw).data?.text ?? "") > maxTextBytes) {
    throw new ColloquyError("text_too_long", `A message has at most ${maxTextBytes} bytes of UTF-8 (maxTextBytes)`);
  }
  const issues = parsed.error.issues.map(({ path, message }): Issue => ({ path: path.join("."), message }));
  const detail = "Send message.send, message.edit, message.delete, read, typing or tool.result as the protocol says";
  throw new ColloquyError("bad_frame", detail, { issues });
};

/** The parts of a bad frame that its refusal needs: which message or call it names, and the text, for its length. */
const Draft = z.object({ text: z.string().optional().catch(undefined) });
const Named = z.object({
  clientKey: ClientKey.optional().catch(undefined),
  toolCallId: toolCallId.optional().catch(undefined),
  messageId: messageId.optional().catch(undefined),
});
type Names = z.infer<typeof Named>;
