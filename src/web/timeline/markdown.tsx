import { type ComponentProps, memo, useMemo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import { isCostly } from "./costly-markdown.ts";
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
  if (isCostly(text)) {
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
