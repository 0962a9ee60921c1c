{{/*
The configuration of the proxy-server, with what the chart adds to the values.
*/}}
{{- define "atoll.proxyServer.config" -}}
{{- $config := deepCopy .Values.proxyServer.config -}}
{{- if and $config.peers (not $config.peers.servers) -}}
{{- $name := printf "proxy-servers.%s.svc" .Release.Namespace -}}
{{- $agents := (include "atoll.proxyServer.ports" . | fromYaml).agents -}}
{{- $_ := set $config.peers "servers" (list (printf "%s:%v" $name $agents)) -}}
{{- $_ := set $config "hostNames" (append ($config.hostNames | default list) $name | uniq) -}}
{{- end -}}
apiVersion: atoll.dev/v1alpha1
kind: ProxyServerConfiguration
{{ toYaml (omit $config "apiVersion" "kind") }}
{{- end }}

{{/*
The configuration of the proxy-agent. It has no `host` if there can be no virtual clusters: the agent would then need the token
and the rights of a service account for nothing.
*/}}
{{- define "atoll.proxyAgent.config" -}}
{{- $config := .Values.proxyAgent.config -}}
{{- if not (or $config.virtualClusters $config.watchVirtualClusters) -}}
{{- $config = omit $config "host" -}}
{{- end -}}
apiVersion: atoll.dev/v1alpha1
kind: ProxyAgentConfiguration
{{ toYaml (omit $config "apiVersion" "kind") }}
{{- end }}

{{/*
The ports of the listeners that a pod exposes, by name. Their defaults are those of the process.
*/}}
{{- define "atoll.proxyServer.ports" -}}
{{- $listeners := .Values.proxyServer.config.listeners | default dict -}}
proxy: {{ include "atoll.port" ($listeners.proxy | default "127.0.0.1:8090") }}
endpoint: {{ include "atoll.port" ($listeners.endpoint | default "0.0.0.0:8443") }}
agents: {{ include "atoll.port" ($listeners.agents | default "0.0.0.0:8091") }}
probes: {{ include "atoll.port" ($listeners.probes | default "0.0.0.0:8092") }}
{{- with $listeners.metrics }}
metrics: {{ include "atoll.port" . }}
{{- end }}
{{- end }}

{{- define "atoll.proxyAgent.ports" -}}
{{- $listeners := .Values.proxyAgent.config.listeners | default dict -}}
probes: {{ include "atoll.port" ($listeners.probes | default "0.0.0.0:8093") }}
{{- with $listeners.metrics }}
metrics: {{ include "atoll.port" . }}
{{- end }}
{{- end }}

{{/*
`true` if the agent uses the API server of its own cluster, and so needs a token and rights. Otherwise empty.
*/}}
{{- define "atoll.proxyAgent.usesHost" -}}
{{- $host := (include "atoll.proxyAgent.config" . | fromYaml).host | default dict -}}
{{- if $host.inCluster -}}true{{- end -}}
{{- end }}

{{/*
The addresses that the agent dials, except for that of the API server of its own cluster, as a map with the key `ports`.
*/}}
{{- define "atoll.proxyAgent.dials" -}}
{{- $config := include "atoll.proxyAgent.config" . | fromYaml -}}
{{- $addresses := concat ($config.servers | default list) ($config.destinations | default list) -}}
{{- with $config.host -}}
{{- $addresses = concat $addresses (.servers | default list) -}}
{{- end -}}
{{- range $config.physicalClusters -}}
{{- $addresses = kindIs "slice" .apiServer | ternary .apiServer (list .apiServer) | concat $addresses -}}
{{- end -}}
{{- $ports := list -}}
{{- range $addresses -}}
{{- $ports = append $ports (include "atoll.port" . | int) -}}
{{- end -}}
{{- toYaml (dict "ports" ($ports | uniq)) -}}
{{- end }}

{{/*
The arguments of the templates in _parts.tpl, without `root` and `values`.
*/}}
{{- define "atoll.proxyServer" -}}
name: proxy-server
reloads: [clusters, karmada, audit]
token: false
ports:
  {{- include "atoll.proxyServer.ports" . | nindent 2 }}
{{- end }}

{{- define "atoll.proxyAgent" -}}
name: proxy-agent
reloads: [sharedObjects, virtualClusters]
token: {{ include "atoll.proxyAgent.usesHost" . | eq "true" }}
ports:
  {{- include "atoll.proxyAgent.ports" . | nindent 2 }}
{{- end }}
