import { useMemo } from "react";
import {
  type BlockDetail,
  type BlockState,
  fieldsOf,
  type LiveBlock,
  type PlainSchema,
  type SpaceState,
  shownValue,
} from "../../client/index.ts";
import { ListView } from "./list-view.tsx";
import { LogView } from "./log-view.tsx";
import { MapView } from "./map-view.tsx";
import { type May, mayNothing, type Part, readOnlyMark } from "./part.tsx";
import { TextView } from "./text-view.tsx";

type BlockContentProps = {
  block: BlockDetail;
  state: BlockState;
  live: LiveBlock | null;
  space: SpaceState;
  may: May;
};

/** A block's value with this person's edits in it, in the view of its kind, or section by section. */
export const BlockContent = ({ block, state, live, space, may }: BlockContentProps) => {
  const value = useMemo(() => shownValue(state), [state]);
  const isStored = state.edits.every(({ status }) => status.kind === "refused");
  const part = { space, version: isStored ? block.version : null, changedBy: state.changedBy };
  const { schema, label } = block;
  if (schema.type !== "composite") {
    const onEdit: Part<unknown>["onEdit"] = (operation, onVersion) => live?.edit([operation], onVersion);
    return <PlainView {...part} schema={schema} value={value} may={may} name={label} onEdit={onEdit} />;
  }
  return schema.sections.map(({ name, schema: of, description, readOnly }) => (
    <section key={name} className="block-section stack" aria-label={name}>
      <h3 className="baseline">
        {name}
        {readOnly && readOnlyMark}
      </h3>
      {description && <p className="small soft">{description}</p>}
      <PlainView
        {...part}
        schema={of}
        value={fieldsOf(value)[name] ?? null}
        may={readOnly ? mayNothing : may}
        name={name}
        onEdit={(operation, onVersion) => live?.edit([{ ...operation, section: name }], onVersion)}
      />
    </section>
  ));
};

const PlainView = ({ schema, ...part }: Part<PlainSchema>) => {
  switch (schema.type) {
    case "text":
      return <TextView schema={schema} {...part} />;
    case "map":
      return <MapView schema={schema} {...part} />;
    case "list":
      return <ListView schema={schema} {...part} />;
    case "log":
      return <LogView schema={schema} {...part} />;
  }
};
