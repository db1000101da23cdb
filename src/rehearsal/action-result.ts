import * as z from "zod";
import { jsonOf } from "../shared/quote.ts";
import type { ActionResult } from "./prompt-view.ts";

const Failure = z.object({ code: z.string().optional(), message: z.string() });

const failedWith = (error: unknown): ActionResult => {
  const { data } = Failure.safeParse(error);
  if (!data) return { ok: false, message: JSON.stringify(error) };
  return { ok: false, message: data.message, ...(data.code === undefined ? {} : { code: data.code }) };
};

/** A tool's result. An `error` in it, or `success: false`, means that it failed. */
export const actionResultOf = (value: unknown): ActionResult => {
  if (typeof value !== "object" || value === null) return { ok: true, value };
  if ("error" in value && value.error) return failedWith(value.error);
  if ("success" in value && value.success === false) return { ok: false, message: "it failed" };
  return { ok: true, value };
};

/** The same for a result that is text: JSON, or words. */
export const actionResultIn = (text: string): ActionResult => {
  const value = jsonOf(text);
  return value === undefined ? { ok: true, value: text } : actionResultOf(value);
};

const Pending = z.object({ status: z.literal("pending"), toolCallId: z.string() });

/** The id of the call whose result comes later, if the tool answered so. */
export const pendingCallOf = (result: ActionResult): string | undefined =>
  result.ok ? Pending.safeParse(result.value).data?.toolCallId : undefined;
