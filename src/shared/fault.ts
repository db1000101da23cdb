/**
 * Fault points: named places where a crash would hurt most. In a production build `__FAULTS__` is false and every call
 * is empty. In tests an armed point crashes its object there, as the platform could.
 */
declare const __FAULTS__: boolean;

export const faultPoints = [
  "space.after-append", // the message is stored, nobody was told
  "space.after-deliver", // the agent has it, the space's cursor does not say so
  "space.before-decision", // the router has answered, its decision is not stored
  "space.before-answer", // what an agent says or shows is stored, the agent has no answer
  "space.mid-speech", // an agent's frame is heard, no client has it
  "agent.mid-redaction", // a go of a redaction is stored, more of it is to come
  "agent.after-deliver", // the event is in the inbox, the loop is not awake
  "agent.after-take", // the run and its inbox message are stored, nothing is generated
  "agent.mid-stream", // the model is speaking
  "agent.after-journal", // the step is stored, its calls are not executed
  "agent.after-call", // the call is stored as started, its effect has not happened
  "agent.after-effect", // the effect has happened, its result is not stored
  "agent.after-rest", // the run waits for somebody, and nobody was told
  "agent.after-cancel", // a person ended the run, and has no answer
  "call.after-begin", // a call runs beside its run, or within it, and nothing has come of it yet
  "call.after-perform", // its server has done it, and nothing of that is stored
  "call.after-tell", // its space shows it, its row does not say so
  "call.after-hand-over", // its result is in the inbox, the loop is not awake
  "agent.before-commit", // all is done, nothing is acknowledged
  "plan.after-fire", // the plan's event is in the inbox, its next due time is set, the loop is not awake
  "hook.before-receive", // the delivery is proven, nothing of it is stored
  "hook.after-receive", // its event is in the inbox, the loop is not awake, the sender has no answer
  "agent.after-commit", // all is acknowledged, the loop has not gone on
  "guest.after-claim", // the lease is stored, its program has no run
  "guest.after-act", // what a program did is stored, it has no answer
  "person.after-hear", // the person knows of it, their space has no answer
  "endpoint.after-deliver", // the endpoint knows of an event, its source has no answer
  "endpoint.after-send", // its server has it, nothing of that is stored
  "person.after-push", // the push service has it, nothing of that is stored
  "workspace.before-answer", // what a space or an agent told is stored, and it has no answer
  "workspace.before-tell", // a rename or a secret is stored, nobody was told
  "workspace.after-tell", // the space or the agent knows it, its job is not done
] as const;

export type FaultPoint = (typeof faultPoints)[number];

/** A Durable Object's state, as far as a crash needs it. */
export type Crashable = { abort(reason?: string): void; storage: { sync(): Promise<void> } };

type Fuse = { passes: number; lit: () => void };

const armed = new Map<FaultPoint, Fuse>();
/** Fuses whose object still writes what it will leave behind. */
const burning = new Set<Fuse>();
const passed = new Map<FaultPoint, number>();
const pollMs = 2;

/**
 * Crashes the next object that comes to `point`, after letting `passes` others through. Resolves when it has, or is
 * disarmed. It looks for that itself: a promise that is resolved by the very object that crashes never settles. `lit` is called in
 * that object, before anything can go on after its crash.
 */
export const armFault = (point: FaultPoint, passes = 0, lit = (): void => undefined): Promise<void> => {
  const fuse: Fuse = { passes, lit };
  armed.set(point, fuse);
  return new Promise((resolve) => {
    const look = (): void => {
      if (armed.get(point) === fuse || burning.has(fuse)) setTimeout(look, pollMs);
      else resolve();
    };
    look();
  });
};

/** Disarms every point, and forgets who came by. */
export const disarmFaults = (): void => {
  armed.clear();
  burning.clear();
  passed.clear();
};

/** How often objects came to `point` since the faults were disarmed. */
export const passesOf = (point: FaultPoint): number => passed.get(point) ?? 0;

/** Lights the point's fuse: from now on its object crashes. */
const light = (point: FaultPoint): Fuse | undefined => {
  passed.set(point, passesOf(point) + 1);
  const fuse = armed.get(point);
  if (!fuse) return undefined;
  if (fuse.passes > 0) {
    fuse.passes -= 1;
    return undefined;
  }
  armed.delete(point);
  fuse.lit();
  return fuse;
};

/** Crashes here and now: what was written in this synchronous turn is lost with it. */
export const fault = (point: FaultPoint, object: Crashable): void => {
  if (__FAULTS__ && light(point)) object.abort(`fault: ${point}`);
};

/**
 * The platform lets no request out before what was written is on disk. A test's model is asked without one: where a
 * fault is armed, this waits as the request would.
 */
export const storedBeforeRequest = async (object: Crashable): Promise<void> => {
  if (__FAULTS__ && armed.size > 0) await object.storage.sync();
};

/** Crashes once all that was written is on disk. */
export const faultOnceStored = async (point: FaultPoint, object: Crashable): Promise<void> => {
  const fuse = __FAULTS__ ? light(point) : undefined;
  if (!fuse) return;
  burning.add(fuse);
  await object.storage.sync();
  burning.delete(fuse);
  object.abort(`fault: ${point}`);
};
