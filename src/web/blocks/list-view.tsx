import { fieldsOf, itemsOf, type Json, type PlainSchema } from "../../client/index.ts";
import { IconButton } from "../look/button.tsx";
import { inWords, itemFrom, shapeOf, withWords } from "./item-shape.ts";
import { useKeyedItems } from "./keyed-items.ts";
import { AddLine, InlineEdit } from "./line-edit.tsx";
import type { Part } from "./part.tsx";

type ListPart = Part<Extract<PlainSchema, { type: "list" }>>;

export const ListView = ({ schema, value, may, name, onEdit }: ListPart) => {
  const items = itemsOf(value);
  const { rows, first } = useKeyedItems(items);
  const add = (words: string): void => {
    const item = itemFrom(words, schema, items);
    if (item !== undefined) onEdit({ op: "push_item", item });
  };
  return (
    <>
      {items.length === 0 && <p className="soft">Nothing on it yet.</p>}
      <ol className="if-filled" aria-label={name}>
        {rows.map(({ key, item }, index) => (
          <li key={key} className="block-item" data-fresh={key > first}>
            <ListItem
              item={item}
              place={index + 1}
              may={may}
              onSet={(next) => onEdit({ op: "set_item", index, item: next })}
              onDelete={() => onEdit({ op: "delete_item", index })}
            />
          </li>
        ))}
      </ol>
      {may.append && itemFrom("x", schema, items) !== undefined && <AddLine label={`Add to ${name}`} onAdd={add} />}
    </>
  );
};

type ListItemProps = {
  item: Json;
  place: number;
  may: ListPart["may"];
  onSet: (item: Json) => void;
  onDelete: () => void;
};

const ListItem = ({ item, place, may, onSet, onDelete }: ListItemProps) => {
  const { words, wordsIn, isDone, rest } = shapeOf(item);
  const isStruck = isDone === true;
  return (
    <>
      {isDone === undefined ? (
        <span className="block-item-place small soft numeric" aria-hidden="true">
          {place}
        </span>
      ) : (
        <input
          type="checkbox"
          checked={isDone}
          disabled={!may.change}
          aria-label={words}
          onChange={(event) => onSet({ ...fieldsOf(item), done: event.target.checked })}
        />
      )}
      <span className="grow words">
        {may.change && wordsIn !== undefined ? (
          <InlineEdit
            label={`Item ${place}`}
            words={words}
            isStruck={isStruck}
            onSave={(text) => onSet(withWords(item, text))}
          />
        ) : (
          <span className="block-plain" data-struck={isStruck}>
            {words}
          </span>
        )}
        {rest.length > 0 && (
          <span className="block-item-rest wrap small soft">
            {rest.map(([field, held]) => (
              <span key={field}>
                {field}: {inWords(held)}
              </span>
            ))}
          </span>
        )}
      </span>
      {may.remove && <IconButton icon="bin" size={17} label={`Delete ${words}`} onClick={onDelete} />}
    </>
  );
};
