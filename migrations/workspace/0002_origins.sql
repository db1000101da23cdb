-- `text` was the default, and so no choice.
UPDATE `spaces` SET `share_origin` = 'reference' WHERE `share_origin` = 'text';
