CREATE TABLE `overheard` (
	`seq` integer PRIMARY KEY NOT NULL,
	`event_id` text NOT NULL,
	`type` text NOT NULL,
	`data` text NOT NULL,
	`root_id` text NOT NULL,
	`received_at` integer NOT NULL
);
--> statement-breakpoint
CREATE VIEW `events` AS select "seq", "event_id", "type", "data", "root_id", "received_at", "wakes", "attempts", "status", "last_error", "retry_at" from "inbox" union all select "seq", "event_id", "type", "data", "root_id", "received_at", 0 as "wakes", 0 as "attempts", 'pending' as "status", null as "last_error", null as "retry_at" from "overheard";--> statement-breakpoint
INSERT INTO `overheard` (`seq`, `event_id`, `type`, `data`, `root_id`, `received_at`)
	SELECT `seq`, `event_id`, `type`, `data`, `root_id`, `received_at` FROM `inbox`
	WHERE `status` = 'pending' AND `retry_at` IS NULL AND (NOT `wakes` OR (
		coalesce((SELECT `wakes` FROM `roots` WHERE `roots`.`id` = `root_id`), 0)
			>= (SELECT json_extract(`config`, '$.limits.maxWakesPerRoot') FROM `agent`)
		AND NOT (`type` = 'tool_result' AND coalesce(json_extract(`data`, '$.expired'), json_extract(`data`, '$.late')) IS NULL)
	));--> statement-breakpoint
DELETE FROM `inbox` WHERE `seq` IN (SELECT `seq` FROM `overheard`);