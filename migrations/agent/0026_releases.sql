ALTER TABLE `calls` ADD `release` text;--> statement-breakpoint
-- What people were told stood in the place of the tool's description.
UPDATE `calls` SET
  `release` = json_object(
    'spaceId', `active_space_id`,
    'name', coalesce((SELECT `snapshot` ->> '$.name' FROM `spaces` WHERE `spaces`.`id` = `calls`.`active_space_id`), ''),
    'readers', substr(`tool` ->> '$.description', 1, instr(`tool` ->> '$.description', ' now. ') - 1),
    'confidential', json(iif(`tool` ->> '$.description' LIKE '% know it everywhere.', 'false', 'true'))
  ),
  `tool` = json_set(`tool`, '$.description', `tool` ->> '$.name')
WHERE `active_space_id` <> `space_id` AND `tool` ->> '$.approval.required' = 1
  AND `tool` ->> '$.name' IN ('send_message', 'send_reply') AND `tool` ->> '$.description' LIKE '% now. The space is %';
