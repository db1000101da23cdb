CREATE TABLE `block_spaces` (
	`block_id` integer NOT NULL,
	`space_id` text NOT NULL,
	`permission` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`block_id`, `space_id`)
) WITHOUT ROWID;
