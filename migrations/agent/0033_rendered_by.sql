ALTER TABLE `blocks` ADD `rendered_by` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
-- A text shows itself, by whatever rules.
UPDATE `blocks` SET `rendered_by` = 1 WHERE `schema` ->> '$.type' = 'text';
