import { useState } from "react";
import type { ToolCall } from "../../client/index.ts";
import { isLong } from "./value-layout.ts";

type Shown = NonNullable<NonNullable<ToolCall["awaits"]>["shown"]>;

/** Which of the folded texts this person has unfolded. Other arguments begin it anew. */
export type Reading = { shown: Shown; unread: number; open: (index: number) => void };

export const useReading = (awaits: ToolCall["awaits"]): Reading => {
  const { shown = [], inputHash } = awaits ?? {};
  const [opened, setOpened] = useState<{ inputHash: string | undefined; indexes: readonly number[] }>({
    inputHash,
    indexes: [],
  });
  const indexes = opened.inputHash === inputHash ? opened.indexes : [];
  const unread = shown.filter(({ text }, index) => isLong(text) && !indexes.includes(index)).length;
  return { shown, unread, open: (index) => setOpened({ inputHash, indexes: [...indexes, index] }) };
};

const count = new Intl.NumberFormat("en");

/** The paths that are no input's: an input's own field of that name is `input.tool`. */
const titles: Record<string, string> = { tool: "Tool", target: "Goes to", readers: "Read by" };

/** All that happens if the call is approved, in the space's order, and nothing but that. */
export const ShownFields = ({ reading: { shown, open } }: { reading: Reading }) => (
  <dl className="value-fields">
    {shown.map(({ path, text, hidden }, index) => (
      <div key={`${index} ${path}`} className="value-field">
        <dt className="soft">
          <Place path={path} />
        </dt>
        <dd>
          <ShownText text={text} onOpen={() => open(index)} />
          {hidden > 0 && (
            <p className="small danger">
              {hidden === 1 ? "1 invisible character" : `${count.format(hidden)} invisible characters`}, shown as{" "}
              <code>{"\\u{…}"}</code>
            </p>
          )}
        </dd>
      </div>
    ))}
  </dl>
);

/** An input may have a field named `request.url` too: what the tool's config sends is marked as no input's can be. */
const Place = ({ path }: { path: string }) => {
  if (titles[path]) return <strong>{titles[path]}</strong>;
  return (
    <>
      {/^request\b/.test(path) && <strong>Sends </strong>}
      <code dir="ltr" title={path}>
        {path.replace(/^(?:input|request)\.(?=.)/, "")}
      </code>
    </>
  );
};

const ShownText = ({ text, onOpen }: { text: string; onOpen: () => void }) => {
  if (text.trim() === "" && !isLong(text)) return <span className="soft">{text === "" ? "empty" : "blank"}</span>;
  const whole = (
    <p className="value-text" dir="auto">
      {text}
    </p>
  );
  if (!isLong(text)) return whole;
  return (
    <details className="value-long" onToggle={({ currentTarget }) => currentTarget.open && onOpen()}>
      <summary>
        <span dir="auto">{text.slice(0, 160)}…</span>{" "}
        <strong className="value-length">Read all {count.format([...text].length)} characters</strong>
      </summary>
      {whole}
    </details>
  );
};
