CREATE TABLE `shares` (
	`block_id` integer NOT NULL,
	`grantee_id` text NOT NULL,
	`permission` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`block_id`, `grantee_id`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `shares` (`block_id`, `grantee_id`, `permission`, `created_at`)
	SELECT `block_id`, `agent_id`, `permission`, `created_at` FROM `block_shares`
	UNION ALL SELECT `block_id`, `space_id`, `permission`, `created_at` FROM `block_spaces`;--> statement-breakpoint
DROP TABLE `block_shares`;--> statement-breakpoint
DROP TABLE `block_spaces`;