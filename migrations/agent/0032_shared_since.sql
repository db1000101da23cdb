ALTER TABLE `shares` ADD `since_version` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
-- What was made in the moment of the share counts as from before.
UPDATE `shares` SET `since_version` = coalesce((
  SELECT max(`version`) FROM `block_versions`
  WHERE `block_versions`.`block_id` = `shares`.`block_id` AND `block_versions`.`created_at` <= `shares`.`created_at`
), 0);
