import { expect, test } from "vitest";
import { idPattern } from "../../src/protocol/ids.ts";
import { createIds } from "../../src/shared/ids.ts";

const ids = createIds("a secret of at least thirty-two chars");

test("[S6] an invented id is not taken for an issued one", () => {
  const spaceId = ids.mint("spc");
  expect(ids.isIssued("spc", spaceId)).toBe(true);
  expect(spaceId).toMatch(idPattern("spc"));
  expect(ids.isIssued("ent", spaceId)).toBe(false);
  const other = spaceId.at(-1) === "0" ? "1" : "0";
  expect(ids.isIssued("spc", spaceId.slice(0, -1) + other)).toBe(false);
  expect(createIds("another secret of thirty-two characters").isIssued("spc", spaceId)).toBe(false);
});

test("an owned id leads to its owner", () => {
  const spaceId = ids.mint("spc");
  const messageId = ids.mintOwned("msg", spaceId);
  expect(ids.isIssued("msg", messageId)).toBe(true);
  expect(messageId).toMatch(idPattern("msg"));
  expect(ids.ownerOf("msg", messageId)).toBe(spaceId);
});

test("[R2] a derived id follows from its parts alone", () => {
  const agentId = ids.mint("ent");
  expect(ids.deriveOwned("tc", agentId, "run", 1, 0)).toBe(ids.deriveOwned("tc", agentId, "run", 1, 0));
  expect(ids.deriveOwned("tc", agentId, "run", 1, 0)).not.toBe(ids.deriveOwned("tc", agentId, "run", 10));
  expect(ids.isIssued("tc", ids.deriveOwned("tc", agentId, "run", 1, 0))).toBe(true);
  expect(ids.ownerOf("tc", ids.deriveOwned("tc", agentId, "run", 1, 0))).toBe(agentId);
});

test("[S6] a derived id of an id inside an owner is issued, and differs for each", () => {
  const [analyst, writer, spaceId] = [ids.mint("ent"), ids.mint("ent"), ids.mint("spc")];
  const messages = [ids.mintOwned("msg", spaceId), ids.mintOwned("msg", spaceId), ids.deriveOwned("msg", spaceId, 1)];
  const events = [analyst, writer].flatMap((owner) => messages.map((id) => ids.deriveFrom("evt", owner, id)));
  expect(new Set(events).size).toBe(events.length);
  expect(events.every((id) => ids.isIssued("evt", id))).toBe(true);
  expect(events.map((id) => ids.ownerOf("evt", id))).toEqual([analyst, analyst, analyst, writer, writer, writer]);
  expect(ids.deriveFrom("evt", analyst, messages[0] ?? "")).toBe(events[0]);
});

test("[C19] a compartment's id follows from agent and space, and shows what it is", () => {
  const [agentId, spaceId] = [ids.mint("ent"), ids.mint("spc")];
  const mindId = ids.compartment(agentId, spaceId);
  expect(mindId).toBe(ids.compartment(agentId, spaceId));
  expect(mindId).not.toBe(ids.compartment(agentId, ids.mint("spc")));
  expect(mindId).toMatch(idPattern("ent"));
  expect(ids.isIssued("ent", mindId)).toBe(true);
  expect(ids.isCompartment(mindId)).toBe(true);
  expect(ids.isCompartment(ids.ownerOf("tc", ids.mintOwned("tc", mindId)))).toBe(true);
  const others = [agentId, ids.derive("ent", "compartment", agentId, spaceId), ids.derive("ent", "wsp", "a key")];
  expect(others.map((id) => ids.isCompartment(id))).toEqual([false, false, false]);
});
