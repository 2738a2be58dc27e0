package bolt

import (
	"encoding/binary"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// A key of the index of topics is a tag, the topic with escaped zeros, an end mark, and a position. So the keys of one topic
// lie together in the order of their positions, and those of topics with a common prefix lie together too. Of a topic that is longer than
// longTopic only that much is there, followed by another mark and a hash.
const (
	tagNormal byte = 'n' // topics in normal form
	tagOther  byte = 'o'

	longTopic = 448

	escapedZero byte = 0xff // follows a zero that is part of the topic
	endWhole    byte = 0x01 // follows the zero after a topic
	endCut      byte = 0x02 // follows the zero after the beginning of a long topic; its hash is next
)

func tag(normal bool) byte {
	if normal {
		return tagNormal
	}
	return tagOther
}

// appendEscaped appends the text so that a zero is never followed by an end mark.
func appendEscaped(dst []byte, text string) []byte {
	for i := range len(text) {
		dst = append(dst, text[i])
		if text[i] == 0 {
			dst = append(dst, escapedZero)
		}
	}
	return dst
}

// topicPrefix is what the keys of a topic begin with; the position follows.
func (k *hashKey) topicPrefix(dst []byte, topic string, normal bool) []byte {
	dst = append(dst, tag(normal))
	if len(topic) <= longTopic {
		return append(appendEscaped(dst, topic), 0, endWhole)
	}
	dst = append(appendEscaped(dst, topic[:longTopic]), 0, endCut)
	return k.appendHash(dst, topic)
}

// topicKey is the key of a topic of the record at p.
func (k *hashKey) topicKey(topic string, normal bool, p history.Position) []byte {
	dst := k.topicPrefix(make([]byte, 0, len(topic)+hashSize+16), topic, normal)
	return binary.BigEndian.AppendUint64(dst, uint64(p))
}

// rangePrefix is what the keys of all topics with the tag begin with that begin with the text; of a long text it is what those of some more
// topics begin with.
func rangePrefix(tag byte, text string) []byte {
	return appendEscaped([]byte{tag}, text[:min(len(text), longTopic)])
}

// wholeTopic returns the topic of a key that holds all of it.
func wholeTopic(key []byte) (string, bool) {
	const position = 8
	end := len(key) - position - 2
	if end < 1 || key[end] != 0 || key[end+1] != endWhole {
		return "", false // also for a hash that happens to end like that: see below
	}
	text := make([]byte, 0, end-1)
	for i := 1; i < end; i++ {
		text = append(text, key[i])
		if key[i] != 0 {
			continue
		}
		if i+1 >= end || key[i+1] != escapedZero {
			return "", false // an end mark before the end: a long topic
		}
		i++
	}
	return string(text), true
}
