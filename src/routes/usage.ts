import type * as z from "zod";
import { readersOf } from "../protocol/principal.ts";
import { UsagePage, usageDays, usageFilters } from "../protocol/usage.ts";
import { dayMs, isoTime, systemClock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";
import { badPage, pageQuery } from "./route-parts.ts";

/** Days that are told of where the question names none. */
const usualDays = 30;

const query = pageQuery().extend(usageFilters);

/** The question with both of its days. */
const asked = ({ from, to, ...rest }: z.output<typeof query>, now: number) => {
  if (rest.cursor !== undefined && !/^\d{1,15}$/.test(rest.cursor)) {
    throw new ColloquyError("invalid_cursor", "Send the nextCursor of the page before, unchanged.");
  }
  const today = isoTime(now).slice(0, 10);
  const last = to ?? (from !== undefined && from > today ? from : today);
  const first = from ?? isoTime(Date.parse(last) - (usualDays - 1) * dayMs).slice(0, 10);
  if (first <= last) return { ...rest, from: first, to: last };
  const message = `must not be after to (${last})`;
  throw new ColloquyError("invalid_request", `from ${message}`, { issues: [{ path: "query.from", message }] });
};

const description = `Tokens that agents' ledgers and routers' count, runs that began and messages that were said, a day (UTC). Agents and spaces tell it about a minute after they used something: what is newer is missing, and a total of a day that has ended is exact. The last ${usageDays} days are kept. A step is of the space whose event began its run, and of the person who pays for it; of plans, services and summaries it is of nobody, so that the entries are less than \`total\`. An admin is told tokens alone of a confidential space that they are not in. No cost is known: prices are between the operator and the models' providers.`;

/** What was used. */
export const usage = new Resource("Workspace");

const answers: [typeof UsagePage, string] = [UsagePage, "By day the newest first, else who used the most tokens first"];

usage.route("GET /v1/usage", {
  summary: "Tokens, runs and messages, by agent, person, space or day",
  description,
  access: "workspace",
  query,
  answers,
  problems: badPage,
  handle: async ({ context, principal, query }) => {
    const readers = principal.kind === "key" ? {} : { readers: readersOf(principal) };
    return unwrap(await workspaceOf(context).usage({ ...asked(query, systemClock.now()), ...readers }));
  },
});

usage.route("GET /v1/operator/workspaces/{workspaceId}/usage", {
  summary: "What a workspace used, as its admins see it",
  description: "As `GET /v1/usage`.",
  access: "operator",
  query,
  answers,
  problems: ["not_found", ...badPage],
  handle: async ({ context: { env }, params: { workspaceId }, query }) =>
    unwrap(await env.WORKSPACE.getByName(workspaceId).usage(asked(query, systemClock.now()))),
});
