-- Messages that told another space's words as their origin before their sources noted it: each has it noted, once.
INSERT INTO `jobs` (`kind`, `key`, `due_at`)
SELECT 'note-told', `message_id`, 0 FROM `log` WHERE `message_id` IS NOT NULL AND `frame` LIKE '%"sourceSpaceName":%'
  AND `frame` ->> '$.message.origin.sourceSpaceName' IS NOT NULL
ON CONFLICT DO NOTHING;--> statement-breakpoint
INSERT INTO `timers` (`name`, `due_at`) SELECT 'jobs', 0 WHERE EXISTS (SELECT 1 FROM `jobs` WHERE `kind` = 'note-told')
ON CONFLICT (`name`) DO UPDATE SET `due_at` = 0;