/**
 * The guards of confidential spaces, for `labels.ts`. `tests` is a file of tests, or the beginning of its path; `named` a
 * part of the name of one that has to fail without the guard, as an expression.
 */
export type Guard = {
  name: string;
  file: string;
  /** The guard, which stands in the file once, and the code without it. */
  guard: string;
  open: string;
  tests: string;
  named: string;
};

const inBatch = { file: "src/space/delivery/agent-batch.ts", tests: "test/space/batch.test.ts" };
const inSpace = { tests: "test/space/confidential" };
const inRelease = { file: "src/agent/tools/confidential.ts", tests: "test/agent/release" };
const inSpeech = { file: "src/agent/tools/confidential.ts", tests: "test/agent/confidential-speech" };
const inBlocks = { file: "src/agent/memory/blocks/shares.ts", tests: "test/agent/confidential/blocks" };
const inMinds = { file: "src/agent/api/compartments.ts", tests: "test/agent/compartments" };

/** What an open mind is told and reads of a confidential space. */
const reading: Guard[] = [
  {
    ...inBatch,
    name: "an open mind is told of no confidential message",
    guard: "seq > openUpTo === (compartmentOf !== null)",
    open: "seq > openUpTo === (compartmentOf !== null) || compartmentOf === null",
    named: "an open mind is told what comes before the switch",
  },
  {
    ...inBatch,
    name: "a compartment is told of no message from before the switch",
    guard: "seq > openUpTo === (compartmentOf !== null)",
    open: "seq > openUpTo === (compartmentOf !== null) || compartmentOf !== null",
    named: "its compartment the rest",
  },
  {
    ...inBatch,
    name: "an open mind is told of no decision after the switch",
    guard: "row.entityId === memberOf(subscriber) && hears(subscriber, row.seq, openUpTo)",
    open: "row.entityId === memberOf(subscriber)",
    named: "an open mind is told what comes before the switch",
  },
  {
    ...inBatch,
    name: "an open mind that hears late is told no edit since the switch",
    guard: "heardOf(messageIn(row), row.changedSeq, hearsUpTo)",
    open: "messageIn(row)",
    named: "an open mind that hears late",
  },
  {
    ...inSpace,
    name: "the switch withdraws what open minds asked people",
    file: "src/space/lifecycle.ts",
    guard: "if (isSealed) withdrawCalls(services, append);",
    open: "",
    named: "the switch withdraws all",
  },
  {
    ...inSpace,
    name: "nobody answers what an open mind asked before the switch",
    file: "src/space/tool-call-events.ts",
    guard: 'if (isDeaf) throw new ColloquyError("gone", withdrawn.message);',
    open: "",
    named: "the switch withdraws all",
  },
  {
    ...inSpace,
    name: "an open mind reads up to the switch",
    file: "src/space/reading.ts",
    guard: "confidentialFrom === null || mindId === compartmentId(services.ids, agentId, space.id)",
    open: "confidentialFrom === null || mindId !== undefined",
    named: "an open mind reads (nothing|up to the switch)",
  },
  {
    ...inSpace,
    name: "an open mind reads a call as it stood at the switch",
    file: "src/space/tool-calls/tool-calls.ts",
    guard: "message: isOwn ? row.message : (openMessage ?? row.message)",
    open: "message: isOwn ? row.message : row.message",
    named: "a call that changes after the switch",
  },
  {
    ...inSpace,
    name: "a space that is confidential stays it",
    file: "src/space/lifecycle.ts",
    guard: "if (wanted !== false) return false;",
    open: "return false;",
    named: "a space becomes confidential once",
  },
  {
    name: "no run's record names a confidential space",
    file: "src/agent/calls/reads.ts",
    guard: "snapshot.deleted || snapshot.confidential",
    open: "snapshot.deleted",
    tests: "test/agent/reads",
    named: "what is confidential now",
  },
  {
    name: "a trace of a compartment holds no words",
    file: "src/agent/tracing/tracer.ts",
    guard: "agent().compartmentId !== null",
    open: 'agent().compartmentId === ""',
    tests: "test/agent/tracing",
    named: "spans of a confidential space",
  },
  {
    name: "an open mind's cursor stands still at the switch",
    file: "src/agent/inbox/deliver.ts",
    guard: "Math.min(to, delivery.openUpTo ?? to)",
    open: "Math.max(to, delivery.openUpTo ?? to)",
    tests: "test/agent/confidential/search",
    named: "of a space that becomes confidential",
  },
];

/** Where a run speaks, and whom it waits for. */
const speaking: Guard[] = [
  {
    ...inSpace,
    name: "a compartment speaks in its own space alone",
    file: "src/space/posting.ts",
    guard: 'mindId === undefined || mindId === compartmentId(ids, agentId, settings.find()?.id ?? "")',
    open: 'mindId !== "" || mindId === compartmentId(ids, agentId, settings.find()?.id ?? "")',
    named: "says, shows and streams nothing in another",
  },
  {
    ...inSpace,
    name: "an open mind waits for nobody in a confidential space",
    file: "src/space/posting.ts",
    guard: "confidentialFrom === null || mindId !== undefined",
    open: "confidentialFrom === null || true",
    named: "may not wait for its people",
  },
  {
    ...inSpeech,
    name: "a compartment's run is refused elsewhere, and told where to say it",
    guard: "if (maySpeakIn(minds, spaceId)) return;",
    open: 'if (spaceId !== "") return;',
    named: "says nothing outside of a confidential space",
  },
  {
    ...inSpeech,
    name: "an open run is refused to ask people of a confidential space",
    guard: "if (!isDeafTo(minds, spaceId)) return;",
    open: 'if (spaceId !== "") return;',
    named: "neither waits for nor asks people",
  },
  {
    ...inRelease,
    name: "words are let out only where enough of the approvers are there",
    guard: "approvers.length < quorum",
    open: "approvers.length < 0",
    named: "asks nobody where too few",
  },
  {
    ...inRelease,
    name: "words are let out by those who may agree now",
    guard: "if (count >= quorum) return;",
    open: "if (count >= 0) return;",
    named: "says nothing where the release was",
  },
  {
    ...inRelease,
    name: "words are let out by the approvers that the space names",
    guard: "approvers ? people.filter((id) => approvers.includes(id)) : people",
    open: "approvers ? people : people",
    named: "asks nobody where too few|says nothing where the release was",
  },
  {
    ...inRelease,
    name: "what was let out begins a chain of who let it out",
    file: "src/agent/tools/builtin/spaces.ts",
    guard: 'const root = { id: messageId, kind: "person", by: approvedBy[0] } as const;',
    open: "const root = (call as unknown as { root: undefined }).root;",
    named: "charges the chain of what was let out",
  },
  {
    ...inRelease,
    name: "what was let out waits for no answers",
    file: "src/agent/tools/builtin/spaces.ts",
    guard: "if (!approval?.required || !wait) return approval;",
    open: "if (!approval || approval) return approval;",
    named: "does not wait for answers to what is let out",
  },
];

/** What an open mind gives its compartments, and what they may change of it. */
const feeding: Guard[] = [
  {
    name: "a compartment has no heartbeat",
    file: "src/agent/run/settings.ts",
    guard: "({ heartbeat: _, ...config }: Config)",
    open: "({ ...config }: Config)",
    tests: "test/agent/confidential-config",
    named: "no heartbeat, and a warning",
  },
  {
    name: "a tool is in a compartment only where its config allows it",
    file: "src/agent/run/settings.ts",
    guard: '=> confidential === "allowed";',
    open: '=> confidential !== "";',
    tests: "test/agent/confidential-config",
    named: "the tools that its owner allows",
  },
  {
    name: "a compartment changes no open memory, goal or plan",
    file: "src/agent/memory/feed-state.ts",
    guard: "if (!open().some(isIt) || own.some(isIt)) return;",
    open: "if (!open().some(isIt) || own.length >= 0) return;",
    tests: "test/agent/feed.actor",
    named: "it may not change what it keeps openly",
  },
  {
    name: "a compartment deletes no open archival entry",
    file: "src/agent/memory/archival.ts",
    guard: "if (!isGone && isOpen(id))",
    open: "if (!isGone && isOpen(id) && isGone)",
    tests: "test/agent/confidential/search",
    named: "keeps its own archival entries",
  },
  {
    ...inMinds,
    name: "a compartment takes no hooks, no triggers and no questions to the open mind",
    guard: "!ofOpenMind.has(method)",
    open: "!ofOpenMind.has(method) || method !== ownId",
    named: "takes no trigger, webhook or config",
  },
  {
    ...inMinds,
    name: "a delivery is taken by the mind that it names",
    guard: "(compartment?.mindId ?? row.id) === mindOf(row)",
    open: "mindOf(row) === mindOf(row)",
    named: "a compartment takes no delivery of another space",
  },
  {
    ...inMinds,
    name: "a delivery is taken of the compartment's own space",
    guard: "(row.compartmentSpaceId ?? space.id) === space.id",
    open: "(row.compartmentSpaceId ?? space.id) !== null",
    named: "a compartment takes no delivery of another space",
  },
  {
    ...inMinds,
    name: "a compartment is made under its own id alone",
    guard: "!compartment || !isMeant ||",
    open: "!compartment ||",
    named: "a delivery for another mind, of another space or of no agent",
  },
  {
    ...inBlocks,
    name: "a compartment only reads the open mind's blocks",
    guard: 'isHeld ? "ReadOnly" : row.permission',
    open: "isHeld ? row.permission : row.permission",
    named: "reads the blocks of the open mind and changes none",
  },
  {
    ...inBlocks,
    name: "a compartment has others' blocks only where these say so",
    guard: '!isHeld || row.confidential === "allowed"',
    open: "!isHeld || isHeld",
    named: "has others' blocks where these say so",
  },
  {
    ...inBlocks,
    name: "a confidential space's people write no open block",
    file: "src/agent/memory/blocks/blocks.ts",
    guard: 'by.kind === "person" && shares.isWithheld(',
    open: 'by.kind === "person" && !shares.isWithheld && shares.isWithheld(',
    named: "its people read it, and write it only if it says so",
  },
  {
    ...inBlocks,
    name: "a compartment shares its blocks with its own space alone",
    file: "src/agent/memory/blocks/shared-blocks.ts",
    guard: "compartmentSpaceId !== null && granteeId !== compartmentSpaceId",
    open: "compartmentSpaceId !== null && granteeId === label",
    named: "of a compartment: with its own space alone",
  },
];

export const guards: Guard[] = [...reading, ...speaking, ...feeding];
