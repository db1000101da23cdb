ALTER TABLE `blocks` ADD `rendered_by` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
-- A text shows itself, by whatever rules.
UPDATE `blocks` SET `rendered_by` = 1 WHERE `schema` ->> '$.type' = 'text';
--> statement-breakpoint
-- Compartments ask for open blocks anew.
UPDATE `shared_blocks` SET `open` = json_set(`open`, '$.updatedAt', '1970-01-01T00:00:00.000Z')
  WHERE `open` IS NOT NULL AND `open` ->> '$.schema.type' <> 'text';
