-- What an origin told of another space, its words and names, goes: a reference stays. `text` was the default, and so no choice.
UPDATE `log` SET `frame` = json_patch(`frame`, json_object('message', json_object('origin', json_object('spaceId', (`frame` -> '$.message.origin') ->> '$.sourceSpaceId', 'sourceSpaceId', NULL,
  'sourceSpaceName', NULL, 'sourceSenderName', NULL, 'sourceEvent', NULL, 'sourceName', NULL))))
WHERE `frame` LIKE '%"origin":{"source%' AND `frame` -> '$.message.origin' IS NOT NULL;--> statement-breakpoint
UPDATE `tool_calls` SET `message` = json_patch(`message`, json_object('origin', json_object('spaceId', (`message` -> '$.origin') ->> '$.sourceSpaceId', 'sourceSpaceId', NULL,
  'sourceSpaceName', NULL, 'sourceSenderName', NULL, 'sourceEvent', NULL, 'sourceName', NULL)))
WHERE `message` LIKE '%"origin":{"source%' AND `message` -> '$.origin' IS NOT NULL;--> statement-breakpoint
UPDATE `space` SET `share_origin` = 'reference' WHERE `share_origin` = 'text';
