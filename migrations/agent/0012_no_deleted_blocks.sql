DELETE FROM `block_versions` WHERE `block_id` IN (SELECT `id` FROM `blocks` WHERE `deleted_at` IS NOT NULL);--> statement-breakpoint
DELETE FROM `block_snapshots` WHERE `block_id` IN (SELECT `id` FROM `blocks` WHERE `deleted_at` IS NOT NULL);--> statement-breakpoint
DELETE FROM `shares` WHERE `block_id` IN (SELECT `id` FROM `blocks` WHERE `deleted_at` IS NOT NULL);--> statement-breakpoint
DELETE FROM `blocks` WHERE `deleted_at` IS NOT NULL;--> statement-breakpoint
DROP INDEX `blocks_label`;--> statement-breakpoint
CREATE UNIQUE INDEX `blocks_label` ON `blocks` (`label`);--> statement-breakpoint
ALTER TABLE `blocks` DROP COLUMN `deleted_at`;--> statement-breakpoint
ALTER TABLE `shared_blocks` DROP COLUMN `last_used_at`;--> statement-breakpoint
CREATE TABLE `__new_search_sources` (
	`name` text PRIMARY KEY NOT NULL,
	`cursor` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_search_sources`("name", "cursor") SELECT "name", "cursor" FROM `search_sources`;--> statement-breakpoint
DROP TABLE `search_sources`;--> statement-breakpoint
ALTER TABLE `__new_search_sources` RENAME TO `search_sources`;--> statement-breakpoint
ALTER TABLE `search_state` ADD `passages` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
UPDATE `search_state` SET `passages` = (SELECT coalesce(sum(`value`), 0) FROM json_each(`entries`));--> statement-breakpoint
ALTER TABLE `search_state` DROP COLUMN `entries`;--> statement-breakpoint
ALTER TABLE `search_state` DROP COLUMN `embedded`;--> statement-breakpoint
UPDATE `search_vectors` SET `packed` = CAST(substr(`packed`, 1, 12 * `passages`) || substr(`packed`, 16 * `passages` + 1) AS BLOB);
