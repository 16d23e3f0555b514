package link

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/gossip"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// maxMembers bounds the list of a region's members.
const maxMembers = gossip.MaxPeers

// encodeMembers returns the PeerMembers of a region: ascending by id, each
// member once, without those that a peer would reject. It also returns the
// number of members left out.
func encodeMembers(members []gossip.Member) (body []byte, left int) {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b gossip.Member) int { return cmp.Compare(a.ID, b.ID) })
	sorted = slices.DeleteFunc(sorted, func(m gossip.Member) bool { return checkMember(&m) != nil })
	sorted = slices.CompactFunc(sorted, func(a, b gossip.Member) bool { return a.ID == b.ID })
	sorted = sorted[:min(len(sorted), maxMembers)]
	list := &rldv1.PeerMembers{}
	for i := range sorted {
		list.Members = append(list.Members, protoMember(&sorted[i]))
	}
	body, _ = proto.Marshal(list) // it fails for text that checkMember rejects
	return body, len(members) - len(sorted)
}

// decodeMembers decodes the members of a region. It allocates only for the
// members that it accepts.
func decodeMembers(b []byte, region string) ([]gossip.Member, error) {
	var members []gossip.Member
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || num != 1 || typ != protowire.BytesType {
			return nil, fmt.Errorf("list of members that is no PeerMembers")
		}
		one, size := protowire.ConsumeBytes(b[n:])
		if size < 0 {
			return nil, fmt.Errorf("list of members that is no PeerMembers: %w", protowire.ParseError(size))
		}
		b = b[n+size:]
		m, err := decodeMember(one, region)
		if err != nil {
			return nil, fmt.Errorf("list of members: %w", err)
		}
		if len(members) == maxMembers {
			return nil, fmt.Errorf("list of more than %d members", maxMembers)
		}
		if len(members) > 0 && members[len(members)-1].ID >= m.ID {
			return nil, fmt.Errorf("list of members whose ids do not ascend at %s", m.ID)
		}
		members = append(members, m)
	}
	return members, nil
}

// maxMember bounds one member in bytes, with room for fields of later versions.
const maxMember = 2 << 10

func decodeMember(b []byte, region string) (gossip.Member, error) {
	if len(b) > maxMember {
		return gossip.Member{}, fmt.Errorf("member of %d bytes, want at most %d", len(b), maxMember)
	}
	var p rldv1.PeerMember
	if err := proto.Unmarshal(b, &p); err != nil {
		return gossip.Member{}, fmt.Errorf("member that is no PeerMember: %w", err)
	}
	m := memberOf(&p)
	if err := checkMember(&m); err != nil {
		return m, err
	}
	if m.Region != region {
		return m, fmt.Errorf("member %q of region %q, want those of %q, the sender's", m.Name, m.Region, region)
	}
	return m, nil
}
