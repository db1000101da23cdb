import { type ComponentProps, memo, useMemo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import { remarkMentions } from "./remark-mentions.ts";
import "./markdown.css";

/** The texts are not trusted: raw HTML is dropped, links send no referrer, images become links. */
const safeAddress = (url: string): string => (/^(https?:|mailto:)/i.test(url) ? url : "");

const SafeLink = ({ href, children }: Pick<ComponentProps<"a">, "href" | "children">) =>
  href ? (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow ugc">
      {children}
    </a>
  ) : (
    <span>{children}</span>
  );

const components: Components = {
  a: ({ href, children }) => <SafeLink href={href}>{children}</SafeLink>,
  img: ({ src, alt }) => (
    <SafeLink href={typeof src === "string" ? src : undefined}>{alt ? `${alt} (image)` : "image"}</SafeLink>
  ),
  // The headings of a message are below those of the page.
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h4>{children}</h4>,
  h3: ({ children }) => <h5>{children}</h5>,
  h4: ({ children }) => <h6>{children}</h6>,
  h5: ({ children }) => <h6>{children}</h6>,
  table: ({ children }) => (
    <div>
      <table>{children}</table>
    </div>
  ),
};

/** What costs the page seconds, or more than its stack: deep nesting, many quotes and lists in others, cells, underlined headings. */
const maxNestingMarks = 1000;
const maxDepth = 60;
const maxContainers = 1000;
const maxTableCells = 20_000;
const maxUnderlines = 500;
const betweenParts = /\n\s*\n|\n(?= {0,3}[-*+] +\S)/;
const openings = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t]))+/gm;
const underTableHead = /^[ \t>]*[|:-][|: \t-]*$/gm;
const underline = /^[ \t>]*(?:=+|-+)[ \t]*$/gm;

/** How many quotes and lists the beginning of a line is in. A list that is in no other is cheap. */
const containersOf = (opening: string): number =>
  (opening.match(/[>*+.)-]/g)?.length ?? 0) - Number(/^ ?[^\s>]/.test(opening));

/** Each row of a table gets as many cells as its head has, however short it is. */
const cellsIn = (part: string): number =>
  Math.max(0, ...(part.match(underTableHead) ?? []).map((line) => line.split("|").length - 1)) *
  part.split("\n").length;

const sumOf = (counts: number[]): number => counts.reduce((sum, each) => sum + each, 0);

const isTangled = (text: string): boolean => {
  const parts = text.split(betweenParts);
  const containers = (text.match(openings) ?? []).map(containersOf);
  return (
    containers.some((depth) => depth + 1 >= maxDepth) ||
    sumOf(containers) > maxContainers ||
    parts.some((part) => (part.match(/[*_[!~]/g)?.length ?? 0) > maxNestingMarks) ||
    sumOf(parts.map(cellsIn)) > maxTableCells ||
    (text.match(underline)?.length ?? 0) > maxUnderlines
  );
};

/** Closes the marks of a growing text, which may end in the middle of a mark or of a character. */
const completed = (text: string): string => remend(text.replace(/[\ud800-\udbff]$/, ""), { linkMode: "text-only" });

type MarkdownProps = { text: string; names: readonly string[]; isGrowing?: boolean };

export const Markdown = memo(({ text, names, isGrowing = false }: MarkdownProps) => {
  const plugins = useMemo<ComponentProps<typeof ReactMarkdown>["remarkPlugins"]>(
    () => [
      [remarkGfm, { singleTilde: false }],
      [remarkMentions, { names }],
    ],
    [names],
  );
  if (isTangled(text)) {
    return (
      <p className="value-text" dir="auto">
        {text}
      </p>
    );
  }
  return (
    <div className="markdown" data-growing={isGrowing} dir="auto">
      <ReactMarkdown remarkPlugins={plugins} components={components} urlTransform={safeAddress} skipHtml>
        {isGrowing ? completed(text) : text}
      </ReactMarkdown>
    </div>
  );
});
