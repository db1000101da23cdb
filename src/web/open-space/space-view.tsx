import { useEffect, useMemo, useState } from "react";
import type { Outbox, SpaceState, SpaceSummary } from "../../client/index.ts";
import { useSpace } from "../../client/react.ts";
import { BlocksPanel } from "../blocks/blocks-panel.tsx";
import { Composer } from "../composer/composer.tsx";
import { useReply } from "../composer/reply.tsx";
import { useSignedIn, useSignedOut } from "../session/session.ts";
import { recall, remember } from "../storage.ts";
import { Announcer } from "../timeline/announcer.tsx";
import { presence, presenceText } from "../timeline/presence.ts";
import { quotedIn } from "../timeline/quoted.ts";
import { type Led, Timeline } from "../timeline/timeline.tsx";
import { useToast } from "../toasts/toasts.tsx";
import { AsksYou } from "./asks-you.tsx";
import { ConnectionBanner } from "./connection-banner.tsx";
import { MembersPanel } from "./members-panel.tsx";
import { type Panel, SpaceHeader } from "./space-header.tsx";
import { useReading, useUnreadStart } from "./use-reading.ts";
import "./space-view.css";

type SpaceViewProps = {
  spaceId: string;
  /** The space as the line tells it. */
  listed: SpaceSummary | undefined;
  /** The message that the address led to. */
  ledBy: Led | null;
  onMenu: () => void;
  onLeave: () => void;
};

export const SpaceView = ({ spaceId, listed, ledBy, onMenu, onLeave }: SpaceViewProps) => {
  const { client, entityId, isTheirs } = useSignedIn();
  const { state, live } = useSpace(client, spaceId, useOutbox(entityId, spaceId));
  const [isAtBottom, setAtBottom] = useState(true);
  const [panel, setPanel] = useState<Panel | null>(null);
  const [led, setLed] = useState<Led | null>(null);
  useEffect(() => setLed(ledBy), [ledBy]);
  const reply = useReply(state);
  const toast = useToast();
  const unreadFromSeq = useUnreadStart(state, listed?.unread ?? 0);
  useReading(state, live, isAtBottom);
  const { connection } = state;

  useEffect(() => live?.onProblem(({ detail }) => toast(detail)), [live, toast]);
  useSignedOut(connection);

  const closePanel = (): void => setPanel(null);
  const name = state.space?.name ?? listed?.name ?? "";
  const others = state.members.filter((member) => member.id !== entityId);
  const replied = reply.message && quotedIn(state, reply.message.id);
  return (
    <div className="space-view">
      <section className="space-column" aria-label={name || "Space"}>
        <SpaceHeader
          name={name}
          state={state}
          panel={panel}
          onPanel={(wanted) => setPanel((shown) => (shown === wanted ? null : wanted))}
          onMenu={onMenu}
        />
        <ConnectionBanner state={state} />
        <Timeline
          {...{ state, live, unreadFromSeq, isAtBottom }}
          onAtBottom={setAtBottom}
          onReply={reply.choose}
          led={led}
        />
        <div className="space-foot">
          <AsksYou state={state} isAtBottom={isAtBottom} onGoTo={(messageId) => setLed({ messageId })} />
          <PresenceLine state={state} />
          <Composer
            spaceId={spaceId}
            spaceName={name}
            people={others}
            isClosed={connection.status === "closed" || !isTheirs}
            replied={replied}
            onCancelReply={() => reply.choose(null)}
            onSend={(text) => {
              live?.send(text, replied ? { replyTo: replied.id } : {});
              reply.choose(null);
            }}
            onTyping={() => live?.typing()}
          />
        </div>
        <Announcer state={state} />
      </section>
      {panel === "members" && <MembersPanel state={state} spaceName={name} onClose={closePanel} onLeave={onLeave} />}
      {panel === "blocks" && <BlocksPanel state={state} onClose={closePanel} />}
    </div>
  );
};

/** Unsent text outlives a change of space, a reload and a sign-out, and is sent as nobody else. */
const useOutbox = (entityId: string, spaceId: string): Outbox =>
  useMemo(() => {
    const key = `colloquy.outbox.${entityId}.${spaceId}`;
    return { load: () => recall("tab", key), keep: (text) => remember("tab", key, text) };
  }, [entityId, spaceId]);

/** Who is at work or typing. Not a live region: the announcer reports the results. */
const PresenceLine = ({ state }: { state: SpaceState }) => {
  const doings = presence(state);
  return (
    <p className="presence column row small soft">
      {doings.length > 0 && state.connection.status === "open" && (
        <>
          <span className="presence-dots" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          <span>{presenceText(doings)}</span>
        </>
      )}
    </p>
  );
};
