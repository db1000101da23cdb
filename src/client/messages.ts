import { z } from "zod";
import { Message } from "../protocol/message.ts";

/** Oldest first. `hasOlder` says whether the timeline goes on before the first of them. */
export type MessagePage = { items: Message[]; hasOlder: boolean };

export const MessagesAnswer = z
  .object({ items: z.array(Message), nextCursor: z.string().nullable() })
  .transform(({ items, nextCursor }): MessagePage => ({ items, hasOlder: nextCursor !== null }));
