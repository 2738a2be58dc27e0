package as

import "testing"

func TestClientRequest_HasCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		form  string
		basic *Basic
		want  bool
	}{
		"nothing":                    {"", nil, false},
		"a client_id":                {"client_id=a", nil, false},
		"Basic":                      {"", &Basic{User: "a", Password: "x"}, true},
		"Basic, without password":    {"", &Basic{User: "a"}, false},
		"a secret":                   {"client_id=a&client_secret=x", nil, true},
		"an empty secret":            {"client_id=a&client_secret=", nil, false},
		"an assertion":               {"client_assertion=x&client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer", nil, true},
		"an assertion of no type":    {"client_assertion=x", nil, false},
		"two methods at once":        {"client_secret=x", &Basic{User: "a", Password: "x"}, false},
		"a secret twice":             {"client_secret=x&client_secret=x", nil, false},
		"a body that is not a form":  {"client_secret=%zz", nil, false},
		"the secret of other fields": {"secret=x", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (ClientRequest{Form: tc.form, Basic: tc.basic}).HasCredentials(); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
